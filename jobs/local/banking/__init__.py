"""Input and expectations of the banking jobs: ninety minutes of a bank's topics and tables, and the results."""
