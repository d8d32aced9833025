"""Evaluations on the processes of Ray, on this machine or many."""
