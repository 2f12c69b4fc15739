package config

// Values used by several rows.
const (
	serverStar = "server.*"
	maxHours   = 1_000_000 // a larger value would overflow a duration
)

var basicKeys = []key{
	{name: "dataDir", kind: parsed, form: path,
		effect: "Directory of snapshots and myid; must be set.",
		into:   func(c *Config) any { return &c.DataDir }},
	{name: "dataLogDir", kind: parsed, form: path, says: "dataDir",
		effect: "Directory of transaction logs.",
		into:   func(c *Config) any { return &c.DataLogDir }},
	{name: "clientPort", kind: parsed, form: decimal, max: 65535, says: "none",
		effect: "Port for clients without TLS; 0 means any free port. If neither this key nor the server line gives a port, no client port is open.",
		into:   func(c *Config) any { return &c.Client.Port }},
	{name: "clientPortAddress", kind: parsed, form: host, says: "all addresses",
		effect: "Address of the client port; needs clientPort.",
		into:   func(c *Config) any { return &c.Client.Host }},
	{name: "tickTime", kind: parsed, form: decimal, unit: "ms", def: "3000", min: 1,
		effect: "Base unit of time; session expiry times are rounded up to a multiple of it.",
		into:   func(c *Config) any { return &c.TickTime }},
	{name: "initLimit", kind: parsed, form: decimal, unit: "ticks", status: inEnsemble,
		effect: "How long a server may take to connect to a leader and be synchronised with it.",
		into:   func(c *Config) any { return &c.Ensemble.InitLimit }},
	{name: "syncLimit", kind: parsed, form: decimal, unit: "ticks", status: inEnsemble,
		effect: "How long a leader and a learner may stay connected without hearing from each other.",
		into:   func(c *Config) any { return &c.Ensemble.SyncLimit }},
	{name: serverStar, kind: parsed, form: pattern,
		effect: "One server, server.ID=host:quorumPort:electionPort[:role][;[clientHost:]clientPort]; with a single participant the server runs standalone and takes its client port from this line if myid matches."},
}
