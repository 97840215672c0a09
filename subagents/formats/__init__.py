"""Files that describe subagents in other people's shapes. Pure: bytes to definitions and remarks."""
