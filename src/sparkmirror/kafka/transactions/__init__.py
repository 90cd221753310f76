"""Transactional ids: epochs, fences, transactions and their control markers."""
