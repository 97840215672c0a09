"""The operator's choices: config.yaml read strictly, with a position for every problem."""
