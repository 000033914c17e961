"""What every route needs: who asks, what a body says, how an answer or an error looks."""
