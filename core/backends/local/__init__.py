"""The backend in this process: store, memory and models behind the contract."""
