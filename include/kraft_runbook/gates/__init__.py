"""What is proven before a person decides, what that person signs, and whether a signature still holds."""
