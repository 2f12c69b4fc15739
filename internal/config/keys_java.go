package config

const (
	noPools   = "there are no thread pools"
	noNetty   = "there is no Netty"
	noLog4j   = "there is no log4j; the log is written to stderr"
	ofClient  = "it is a setting of clients"
	noWatches = "this version stores watches differently"
)

var javaKeys = []key{
	{name: "serverCnxnFactory", kind: system, form: text, effect: "Java class of client connections.", status: ignored, reason: "there is one kind of client connection"},
	{name: "nio.numSelectorThreads", kind: system, form: number, effect: "Selector threads.", status: ignored, reason: noPools},
	{name: "nio.numWorkerThreads", kind: system, form: number, effect: "Worker threads.", status: ignored, reason: noPools},
	{name: "nio.directBufferBytes", kind: system, form: number, unit: "bytes", effect: "Direct buffers.", status: ignored, reason: "there are no direct buffers"},
	{name: "nio.shutdownTimeout", kind: system, form: number, unit: "ms", effect: "How long shutdown waits for worker threads.", status: ignored, reason: noPools},
	{name: "netty.*", kind: system, form: pattern, effect: "Settings of Netty.", status: ignored, reason: noNetty},
	{name: "commitProcessor.numWorkerThreads", kind: system, form: number, effect: "Threads that answer reads.", status: ignored, reason: noPools},
	{name: "commitProcessor.maxReadBatchSize", kind: system, form: number, effect: "Reads between two commits.", status: ignored, reason: "reads do not queue"},
	{name: "commitProcessor.maxCommitBatchSize", kind: system, form: number, effect: "Commits between two reads.", status: ignored, reason: "reads do not queue"},
	{name: "commitProcessor.shutdownTimeout", kind: system, form: number, unit: "ms", effect: "How long shutdown waits for the threads that answer reads.", status: ignored, reason: noPools},
	{name: "watchManagerName", kind: system, form: text, effect: "Java class that stores watches.", status: ignored, reason: noWatches},
	{name: "watcherCleanThreadsNum", kind: system, form: number, effect: "Threads that remove dead watches.", status: ignored, reason: noWatches},
	{name: "watcherCleanThreshold", kind: system, form: number, effect: "Number of dead watches at which the threads that remove them start.", status: ignored, reason: noWatches},
	{name: "watcherCleanIntervalInSeconds", kind: system, form: number, unit: "s", effect: "Time between two runs of the threads that remove dead watches.", status: ignored, reason: noWatches},
	{name: "maxInProcessingDeadWatchers", kind: system, form: number, effect: "Largest number of dead watches.", status: ignored, reason: noWatches},
	{name: "bitHashCacheSize", kind: system, form: number, effect: "Cache size for watches.", status: ignored, reason: noWatches},
	{name: "jmx.log4j.disable", kind: system, form: boolean, effect: "Disables the management of log settings by JMX.", status: ignored, reason: noLog4j},
	{name: "jmx.log4j.mbean", kind: system, form: text, effect: "Name of the JMX bean for log settings.", status: ignored, reason: noLog4j},
	{name: "client.secure", kind: system, form: boolean, effect: "Clients use TLS.", status: ignored, reason: ofClient},
	{name: "clientCnxnSocket", kind: system, form: text, effect: "Java class of client sockets.", status: ignored, reason: ofClient},
	{name: "electionPort", kind: system, form: number, effect: "Election port in very old files.", status: ignored, reason: "it has had no meaning since 3.5; the port is in the server line"},
	{name: "quorumPort", kind: system, form: number, effect: "Quorum port in very old files.", status: ignored, reason: "it has had no meaning since 3.5; the port is in the server line"},
	{name: "log4j.*", kind: system, form: pattern, effect: "Settings of log4j.", status: ignored, reason: noLog4j},
}
