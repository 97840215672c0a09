"""What every API of this product shares: errors, authentication, permissions, throttles, bodies, descriptions."""
