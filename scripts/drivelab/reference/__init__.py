"""The pages of docs/reference, made of what the program itself goes by: `python -m drivelab.reference` writes them."""
