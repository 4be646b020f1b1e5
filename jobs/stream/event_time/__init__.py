"""Event time: how it is read, the watermark, and which rows are late."""
