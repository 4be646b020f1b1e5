# In the place of astral/uv: the program of uv's distribution.
FROM scratch
COPY uv /uv
