"""Where reads and writes meet the rules in an order: observe, leave KRaft, fence the quorum."""
