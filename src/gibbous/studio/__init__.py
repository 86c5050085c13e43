"""The studio: gibbous in a browser of this machine; each job is a command of its own. Start at app.py."""
