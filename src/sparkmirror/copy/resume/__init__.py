"""Finds where a partition resumes: claims, fences, the end of the attempt before, and records of attempts."""
