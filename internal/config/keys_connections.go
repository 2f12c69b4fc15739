package config

var connectionKeys = []key{
	{name: "connection_throttle_tokens", live: true, kind: system, form: number, def: "0",
		effect: "Size of the token bucket. Every connection that asks for a session takes a token, and is closed without an answer if there is none; 0 means no throttle.",
		into:   func(c *Config) any { return &c.Limits.Connections.Tokens }},
	{name: "connection_throttle_fill_time", live: true, kind: system, form: number, unit: "ms", def: "1", min: 1,
		effect: "Time between refills of the bucket.",
		into:   func(c *Config) any { return &c.Limits.Connections.FillTime }},
	{name: "connection_throttle_fill_count", live: true, kind: system, form: number, def: "1", min: 1,
		effect: "Tokens added at each refill.",
		into:   func(c *Config) any { return &c.Limits.Connections.FillCount }},
	{name: "connection_throttle_freeze_time", live: true, kind: system, form: number, unit: "ms", def: "-1", min: -1,
		effect: "Time between changes of the drop probability, which is the share of connections that is refused although there may be tokens; -1 means that it stays 0.",
		into:   func(c *Config) any { return &c.Limits.Connections.Freeze }},
	{name: "connection_throttle_drop_increase", live: true, kind: system, form: share, def: "0.02",
		effect: "Increase of the drop probability when there is no token.",
		into:   func(c *Config) any { return &c.Limits.Connections.DropIncrease }},
	{name: "connection_throttle_drop_decrease", live: true, kind: system, form: share, def: "0.002",
		effect: "Decrease of the drop probability when few tokens are missing.",
		into:   func(c *Config) any { return &c.Limits.Connections.DropDecrease }},
	{name: "connection_throttle_decrease_ratio", live: true, kind: system, form: share, def: "0",
		effect: "The drop probability decreases while at most this share of the bucket's tokens is missing.",
		into:   func(c *Config) any { return &c.Limits.Connections.DecreaseRatio }},
	{name: "connection_throttle_weight_enabled", live: true, kind: system, form: boolean, def: "false",
		effect: "A connection costs as many tokens as the key connection_throttle_*_weight for its kind says, instead of one. connection_throttle_tokens and connection_throttle_fill_count then count new global sessions.",
		into:   func(c *Config) any { return &c.Limits.Connections.Weighted }},
	{name: "connection_throttle_global_session_weight", live: true, kind: system, form: number, def: "3", min: 1, max: weightMax,
		effect: "Tokens for a new global session; at least as many as for a local one.",
		into:   func(c *Config) any { return &c.Limits.Connections.Global }},
	{name: "connection_throttle_local_session_weight", live: true, kind: system, form: number, def: "1", min: 1, max: weightMax,
		effect: "Tokens for a new local session.",
		into:   func(c *Config) any { return &c.Limits.Connections.Local }},
	{name: "connection_throttle_renew_session_weight", live: true, kind: system, form: number, def: "2", min: 1, max: weightMax,
		effect: "Tokens for a session that continues; at least as many as for a new local one.",
		into:   func(c *Config) any { return &c.Limits.Connections.Renewed }},
}

// weightMax keeps the product of tokens and weight small.
const weightMax = 1_000_000

// checkConnectionThrottle raises weights below that of a local session, as ZooKeeper does.
func (l *loader) checkConnectionThrottle() {
	t := &l.c.Limits.Connections
	for _, w := range []struct {
		name   string
		weight *int
	}{{"connection_throttle_global_session_weight", &t.Global}, {"connection_throttle_renew_session_weight", &t.Renewed}} {
		if *w.weight < t.Local {
			l.warnIf(t.Weighted, w.name, "is below connection_throttle_local_session_weight, whose value is used")
			*w.weight = t.Local
		}
	}
}
