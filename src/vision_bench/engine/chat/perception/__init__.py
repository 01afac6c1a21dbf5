"""Classical looking and listening: what can be measured in a picture and a sound without understanding either."""
