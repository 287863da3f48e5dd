"""Is the data what it was recorded to be, and does the tokenizer fit the model?"""
