-- What windows are open, and what holds them back, is told by the API.

GRANT SELECT ON kept_entries TO servioticy_api;
