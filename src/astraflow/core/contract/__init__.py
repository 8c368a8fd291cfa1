"""The contract of the API: one struct for every object, request body, query and event body that leaves the process.

The server encodes these structs, the client decodes them, and OpenAPI is made from them (`schema`). A field is
documented where it is declared, so a change of the API is a change of one struct.
"""
