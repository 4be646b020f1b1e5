"""What a job's part of AWS costs: prices with their date and source, a bill of what is used, and the difference between two bills."""
