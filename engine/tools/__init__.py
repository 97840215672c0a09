"""What agents may do. Names and choices load no agent stack; the tools themselves do."""
