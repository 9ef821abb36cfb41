"""What tests share: real servers, and waiting for conditions instead of sleeping."""
