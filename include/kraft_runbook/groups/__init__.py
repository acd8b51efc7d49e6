"""Consumer groups between ZooKeeper's coordination and Kafka's (KIP-125): what is true of them, and what may happen
next. Pure: values in, values out.
"""
