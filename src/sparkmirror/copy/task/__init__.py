"""The copy job on Spark and its tasks: started on the driver, run on executors, watched from both."""
