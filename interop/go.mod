module bellwether/interop

go 1.26.0

require (
	bellwether v0.0.0
	github.com/go-zookeeper/zk v1.0.4
)

replace bellwether => ../
