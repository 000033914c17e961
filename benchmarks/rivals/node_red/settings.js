// How Node-RED runs beside the platform: no editor, one pool of connections to the same Postgres,
// whose commits wait for the disk as little as the pipeline's do.
const { Pool } = require("pg");

const pool = new Pool({
  connectionString: process.env.DSN,
  max: 10,
  options: "-c synchronous_commit=off",
});
const ready = pool.query(
  "CREATE TABLE IF NOT EXISTS node_red (device text, stream text, at bigint, document text," +
    " PRIMARY KEY (device, stream, at))",
);

module.exports = {
  uiHost: "127.0.0.1",
  uiPort: Number(process.env.PORT),
  httpAdminRoot: false,
  credentialSecret: false,
  userDir: process.env.FOLDER,
  flowFile: process.env.FLOWS,
  logging: { console: { level: "warn" } },
  functionGlobalContext: { pool, ready },
};
