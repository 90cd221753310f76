"""A Connect worker: herder, leader, REST API and Connect's internal topics."""
