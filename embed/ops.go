package embed

import "bellwether/wire"

// The operations whose replies [Ensemble.LoseNextReply] can lose.
const (
	// OpCreate stands for every kind of create.
	OpCreate = wire.OpCreate
	// OpDelete is the operation of zk.Client.Delete.
	OpDelete = wire.OpDelete
	// OpExists is the operation of zk.Client.Exists.
	OpExists = wire.OpExists
	// OpGetData is the operation of zk.Client.Get.
	OpGetData = wire.OpGetData
	// OpSetData is the operation of zk.Client.Set.
	OpSetData = wire.OpSetData
	// OpGetACL is the operation of zk.Client.GetACL.
	OpGetACL = wire.OpGetACL
	// OpSetACL is the operation of zk.Client.SetACL.
	OpSetACL = wire.OpSetACL
	// OpGetChildren is the operation of zk.Client.Children.
	OpGetChildren = wire.OpGetChildren2
	// OpSync is the operation of zk.Client.Sync.
	OpSync = wire.OpSync
	// OpMulti is the operation of zk.Client.Multi.
	OpMulti = wire.OpMulti
	// OpMultiRead is the operation of zk.Client.MultiRead.
	OpMultiRead = wire.OpMultiRead
	// OpAddWatch is the operation of zk.Client.AddWatch.
	OpAddWatch = wire.OpAddWatch
	// OpCloseSession is the operation of zk.Client.Close.
	OpCloseSession = wire.OpCloseSession
)
