"""The measuring tool measured: what ``vision-bench run`` reports beside what really happened."""
