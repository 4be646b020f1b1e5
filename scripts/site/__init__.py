"""The documentation as a site: pages from the repository's Markdown, rendered offline, with every link checked."""
