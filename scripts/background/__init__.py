"""Commands that run detached on this machine: started, found again, and stopped."""
