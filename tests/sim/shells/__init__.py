"""Tier C: the true shells of scheduler and worker in virtual time, with faults round them."""
