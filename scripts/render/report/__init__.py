"""The plan as one HTML page: no script, no font, no picture and no request from elsewhere.

The page is made of a plan alone; the same plan gives the same bytes.
"""
