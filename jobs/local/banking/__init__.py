"""Input and expectations of the banking jobs: what a bank's topics and tables hold in ninety minutes, and what follows from it."""
