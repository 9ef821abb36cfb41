"""Ways to run an app somewhere: started, watched, stopped and killed by a job id of ours."""
