package config

// Rows that many settings share.
const (
	serverStar = "server.*"
	maxHours   = 1_000_000 // more would not fit a duration
)

var basicKeys = []key{
	{name: "dataDir", kind: parsed, form: path,
		effect: "Directory of snapshots and myid; required.",
		into:   func(c *Config) any { return &c.DataDir }},
	{name: "dataLogDir", kind: parsed, form: path, says: "dataDir",
		effect: "Directory of transaction logs.",
		into:   func(c *Config) any { return &c.DataLogDir }},
	{name: "clientPort", kind: parsed, form: decimal, max: 65535, says: "none",
		effect: "Port for plain clients; without one here or in the server line no client port is open, and 0 takes any free port.",
		into:   func(c *Config) any { return &c.Client.Port }},
	{name: "clientPortAddress", kind: parsed, form: host, says: "all addresses",
		effect: "Address of the client port; needs clientPort.",
		into:   func(c *Config) any { return &c.Client.Host }},
	{name: "tickTime", kind: parsed, form: decimal, unit: "ms", def: "3000", min: 1,
		effect: "Base unit of time; session expiry is rounded up to it.",
		into:   func(c *Config) any { return &c.TickTime }},
	{name: "initLimit", kind: parsed, form: decimal, unit: "ticks", status: inEnsemble,
		effect: "How long a server may take to connect to a leader and be synchronised.",
		into:   func(c *Config) any { return &c.Ensemble.InitLimit }},
	{name: "syncLimit", kind: parsed, form: decimal, unit: "ticks", status: inEnsemble,
		effect: "How long a leader and a learner may not hear from each other.",
		into:   func(c *Config) any { return &c.Ensemble.SyncLimit }},
	{name: serverStar, kind: parsed, form: pattern,
		effect: "One server, server.ID=host:quorumPort:electionPort[:role][;[clientHost:]clientPort]; with a single participant the server runs alone and takes its client port from this line if myid matches."},
}
