"""The nodes' hosts, by Ansible."""
