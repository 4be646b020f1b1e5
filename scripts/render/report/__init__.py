"""The plan as one self-contained HTML page: no scripts, fonts, images or requests.

The page depends on the plan alone; the same plan yields the same bytes.
"""
