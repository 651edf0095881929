"""The pictures that tools/plot draws: a file for each subject, and what they share."""
