package admin

import (
	"io"
	"net/http"
	"slices"

	"bellwether/internal/server"
)

// command is a command of ZooKeeper's AdminServer.
type command struct {
	names []string // the first one is the primary name
	run   func(a *Admin, c *call) object
	// idle: the command is answered even if the server does not serve.
	idle bool
	// post: the command changes something and wants a body (ZooKeeper 3.9).
	post bool
	// resets: the command changes something, although its method is GET. A browser that says
	// that a page of another site asks is refused.
	resets bool
	// guarded: the command needs all permissions on the root znode (ZooKeeper 3.9).
	guarded bool
	// large: the answer may have a field for each watch or ephemeral.
	large bool
}

// call is one request for a command. run sets code and stream if they differ from 200 and
// from the JSON of its fields.
type call struct {
	http   *http.Request
	server *server.Server
	code   int
	err    string // "error"; empty: null
	stream stream
	turn   bool      // it is the turn of this large command
	body   io.Reader // of the request
}

// commands are the commands by their primary names, in the order in which the list shows
// them.
var commands = []command{
	{names: []string{"configuration", "conf", "config"}, run: configuration},
	{names: []string{"connection_stat_reset", "crst"}, resets: true, run: func(_ *Admin, c *call) object { c.server.ResetConnections(); return nil }},
	{names: []string{"connections", "cons"}, run: listConnections},
	{names: []string{"dirs"}, run: dirSizes},
	{names: []string{"dump"}, run: dumpSessions, large: true},
	{names: []string{"environment", "env", "envi"}, run: environment, idle: true},
	{names: []string{"get_trace_mask", "gtmk"}, run: getTraceMask, idle: true},
	{names: []string{"hash"}, run: digests},
	{names: []string{"initial_configuration", "icfg"}, run: initialConfiguration},
	{names: []string{"is_read_only", "isro"}, run: isReadOnly},
	{names: []string{"last_snapshot", "lsnp"}, run: lastSnapshot},
	{names: []string{"leader", "lead"}, run: leader},
	{names: []string{"monitor", "mntr"}, run: monitor},
	{names: []string{"observer_connection_stat_reset", "orst"}, resets: true, run: resetObservers},
	{names: []string{"observers", "obsr"}, run: observers},
	{names: []string{"restore", "rest"}, run: restore, post: true, guarded: true},
	{names: []string{"ruok"}, run: nothing},
	{names: []string{"server_stats", "srvr"}, run: serverStats},
	{names: []string{"set_trace_mask", "stmk"}, run: setTraceMask, resets: true, idle: true},
	{names: []string{"snapshot", "snap"}, run: snapshot, guarded: true},
	{names: []string{"stat_reset", "srst"}, resets: true, run: func(_ *Admin, c *call) object { c.server.ResetStats(); return nil }},
	{names: []string{"stats", "stat"}, run: stats},
	{names: []string{"system_properties", "sysp"}, run: systemProperties, idle: true},
	{names: []string{"voting_view"}, run: votingView},
	{names: []string{"watch_summary", "wchs"}, run: watchSummary, large: true},
	{names: []string{"watches", "wchc"}, run: watches, large: true},
	{names: []string{"watches_by_path", "wchp"}, run: watchesByPath, large: true},
	{names: []string{"zabstate"}, run: zabState, idle: true},
}

// find returns the command with a name, or nil.
func find(name string) *command {
	for i := range commands {
		if slices.Contains(commands[i].names, name) {
			return &commands[i]
		}
	}
	return nil
}

// nothing is a command without fields: ruok only says that the server serves.
func nothing(*Admin, *call) object { return nil }

// fail makes an error the answer's first field, as ZooKeeper does for errors that the
// command itself finds.
func fail(text string) object { return object{{"error", text}} }
