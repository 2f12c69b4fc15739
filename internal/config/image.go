package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Image is what the start script of a container image makes of its environment.
type Image struct {
	File     string // where zoo.cfg is written unless it exists
	Config   string // its text
	DataDir  string
	MyID     string // text of myid, written unless it exists
	JVMFlags string // for Load
}

// environment reads variables with defaults.
type environment map[string]string

func (e environment) or(name, def string) string {
	if v := e[name]; v != "" {
		return v
	}
	return def
}

// yes reads a switch as the Bitnami image does.
func (e environment) yes(name string) bool {
	v := strings.ToLower(e[name])
	return v == "yes" || v == "true" || v == "1"
}

// lines collects the text of a configuration.
type lines struct{ strings.Builder }

func (l *lines) add(key, value string) { fmt.Fprintf(l, "%s=%s\n", key, escapeValue(value)) }

// escapeValue writes a value so that the properties reader gives it back.
func escapeValue(v string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(v)
}

// fromEnv adds a line for each pair of key and variable, with its default; a
// variable without default gives a line only if it is set.
func (l *lines) fromEnv(e environment, rows [][3]string) {
	for _, r := range rows {
		if v := e.or(r[1], r[2]); v != "" {
			l.add(r[0], v)
		}
	}
}

// OfficialImage reads the environment as the image "zookeeper" does.
func OfficialImage(env map[string]string) Image {
	e := environment(env)
	data := e.or("ZOO_DATA_DIR", "/data")
	var l lines
	l.fromEnv(e, [][3]string{
		{"dataDir", "ZOO_DATA_DIR", "/data"},
		{"dataLogDir", "ZOO_DATA_LOG_DIR", "/datalog"},
		{"tickTime", "ZOO_TICK_TIME", "2000"},
		{"initLimit", "ZOO_INIT_LIMIT", "5"},
		{"syncLimit", "ZOO_SYNC_LIMIT", "2"},
		{"autopurge.snapRetainCount", "ZOO_AUTOPURGE_SNAPRETAINCOUNT", "3"},
		{"autopurge.purgeInterval", "ZOO_AUTOPURGE_PURGEINTERVAL", "0"},
		{"maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS", "60"},
		{"standaloneEnabled", "ZOO_STANDALONE_ENABLED", "true"},
		{"admin.enableServer", "ZOO_ADMINSERVER_ENABLED", "true"},
		{"4lw.commands.whitelist", "ZOO_4LW_COMMANDS_WHITELIST", ""},
	})
	words := strings.Fields(e.or("ZOO_SERVERS", "server.1=localhost:2888:3888;2181"))
	for _, w := range append(words, strings.Fields(e["ZOO_CFG_EXTRA"])...) {
		l.WriteString(w + "\n")
	}
	return Image{
		File:     e.or("ZOO_CONF_DIR", "/conf") + "/zoo.cfg",
		Config:   l.String(),
		DataDir:  data,
		MyID:     e.or("ZOO_MY_ID", "1") + "\n",
		JVMFlags: joinFlags(e["SERVER_JVMFLAGS"], e["JVMFLAGS"]),
	}
}

func joinFlags(flags ...string) string {
	return strings.Join(slices.DeleteFunc(flags, func(f string) bool { return f == "" }), " ")
}

// BitnamiImage reads the environment as the image "bitnami/zookeeper" does.
// A variable NAME_FILE names a file with the value of NAME; readFile reads it.
func BitnamiImage(env map[string]string, readFile func(path string) ([]byte, error)) (Image, error) {
	e, err := fromFiles(env, readFile)
	if err != nil {
		return Image{}, err
	}
	const data = "/bitnami/zookeeper/data"
	var l lines
	l.add("dataDir", data)
	l.fromEnv(e, [][3]string{
		{"dataLogDir", "ZOO_DATA_LOG_DIR", ""},
		{"tickTime", "ZOO_TICK_TIME", "2000"},
		{"initLimit", "ZOO_INIT_LIMIT", "10"},
		{"syncLimit", "ZOO_SYNC_LIMIT", "5"},
		{"maxCnxns", "ZOO_MAX_CNXNS", "0"},
		{"maxClientCnxns", "ZOO_MAX_CLIENT_CNXNS", "60"},
		{"autopurge.purgeInterval", "ZOO_AUTOPURGE_INTERVAL", "0"},
		{"autopurge.snapRetainCount", "ZOO_AUTOPURGE_RETAIN_COUNT", "3"},
		{"preAllocSize", "ZOO_PRE_ALLOC_SIZE", "65536"},
		{"snapCount", "ZOO_SNAPCOUNT", "100000"},
		{"maxSessionTimeout", "ZOO_MAX_SESSION_TIMEOUT", "40000"},
		{"4lw.commands.whitelist", "ZOO_4LW_COMMANDS_WHITELIST", "srvr, mntr"},
		{"peerType", "ZOO_PEER_TYPE", ""},
	})
	l.add("reconfigEnabled", strconv.FormatBool(e.yes("ZOO_RECONFIG_ENABLED")))
	l.add("quorumListenOnAllIPs", strconv.FormatBool(e.yes("ZOO_LISTEN_ALLIPS_ENABLED")))
	l.bitnamiFaces(e)
	l.bitnamiGuards(e)
	l.bitnamiServers(e)
	l.bitnamiAny(e)
	return Image{
		File:    "/opt/bitnami/zookeeper/conf/zoo.cfg",
		Config:  l.String(),
		DataDir: data,
		MyID:    e.or("ZOO_SERVER_ID", "1") + "\n",
		JVMFlags: joinFlags("-Dzookeeper.electionPortBindRetry=0",
			"-Dzookeeper.fips-mode="+strconv.FormatBool(e["ZOO_FIPS_MODE"] == "" || e.yes("ZOO_FIPS_MODE")),
			e["SERVER_JVMFLAGS"], e["JVMFLAGS"]),
	}, nil
}

// fromFiles replaces each NAME_FILE by NAME with the content of the file.
func fromFiles(env map[string]string, readFile func(string) ([]byte, error)) (environment, error) {
	e := make(environment, len(env))
	for name, v := range env {
		if _, isFile := strings.CutSuffix(name, "_FILE"); !isFile {
			e[name] = v
		}
	}
	for name, file := range env {
		plain, isFile := strings.CutSuffix(name, "_FILE")
		if !isFile || file == "" || !strings.HasPrefix(name, "ZOO_") || strings.HasPrefix(name, "ZOO_TLS_") && isStoreFile(plain) {
			continue
		}
		text, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("the file that %s names: %w", name, err)
		}
		e[plain] = strings.TrimRight(string(text), "\r\n")
	}
	return e, nil
}

// isStoreFile reports whether a variable is itself the name of a key store, so
// that its suffix _FILE does not mean a file with the value.
func isStoreFile(plain string) bool {
	return strings.HasSuffix(plain, "KEYSTORE") || strings.HasSuffix(plain, "TRUSTSTORE")
}

// bitnamiFaces adds the client port, the admin server and the metrics page.
func (l *lines) bitnamiFaces(e environment) {
	if !e.yes("ZOO_TLS_CLIENT_ENABLE") {
		l.add("clientPort", e.or("ZOO_PORT_NUMBER", "2181"))
	}
	l.add("admin.enableServer", strconv.FormatBool(e.yes("ZOO_ENABLE_ADMIN_SERVER")))
	if e.yes("ZOO_ENABLE_ADMIN_SERVER") {
		l.add("admin.serverAddress", e.or("ZOO_ADMIN_SERVER_ADDRESS", "127.0.0.1"))
		l.add("admin.serverPort", e.or("ZOO_ADMIN_SERVER_PORT_NUMBER", "8080"))
	}
	if e.yes("ZOO_ENABLE_PROMETHEUS_METRICS") {
		l.add("metricsProvider.className", "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider")
		l.add("metricsProvider.httpPort", e.or("ZOO_PROMETHEUS_METRICS_PORT_NUMBER", "7000"))
	}
}

// bitnamiGuards adds what the image sets up for authentication and TLS, so that
// Load refuses what is not supported instead of starting open.
func (l *lines) bitnamiGuards(e environment) {
	if e.yes("ZOO_ENABLE_AUTH") {
		l.add("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
		l.add("sessionRequireClientSASLAuth", "true")
	}
	if e.yes("ZOO_ENABLE_QUORUM_AUTH") {
		l.add("quorum.auth.enableSasl", "true")
		l.add("quorum.auth.learnerRequireSasl", "true")
		l.add("quorum.auth.serverRequireSasl", "true")
	}
	if e.yes("ZOO_TLS_CLIENT_ENABLE") {
		l.add("secureClientPort", e.or("ZOO_TLS_PORT_NUMBER", "3181"))
		l.add("ssl.clientAuth", e.or("ZOO_TLS_CLIENT_AUTH", "need"))
	}
	if e.yes("ZOO_TLS_QUORUM_ENABLE") {
		l.add("sslQuorum", "true")
		l.add("ssl.quorum.clientAuth", e.or("ZOO_TLS_QUORUM_CLIENT_AUTH", "need"))
	}
}

// bitnamiServers adds the server lines. A single server gets none. An entry may
// end with its id after two colons; otherwise its position counts.
func (l *lines) bitnamiServers(e environment) {
	entries := strings.FieldsFunc(e["ZOO_SERVERS"], func(r rune) bool { return strings.ContainsRune(",; \t\n", r) })
	if len(entries) < 2 {
		return
	}
	for i, entry := range entries {
		address, id := splitBitnamiID(entry, i+1)
		l.add("server."+id, address+";"+e.or("ZOO_PORT_NUMBER", "2181"))
	}
}

// splitBitnamiID parts an entry from the id at its end. An IPv6 host in brackets
// has double colons of its own.
func splitBitnamiID(entry string, position int) (address, id string) {
	at := strings.LastIndex(entry, "::")
	if at < 0 || at < strings.LastIndexByte(entry, ']') {
		return entry, strconv.Itoa(position)
	}
	return entry[:at], entry[at+2:]
}

// bitnamiAny adds ZOO_CFG_<key>, underscores standing for dots, in order of
// their names.
func (l *lines) bitnamiAny(e environment) {
	var names []string
	for name := range e {
		if strings.HasPrefix(name, "ZOO_CFG_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		l.add(strings.ReplaceAll(strings.TrimPrefix(name, "ZOO_CFG_"), "_", "."), e[name])
	}
}
