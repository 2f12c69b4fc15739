// node-zookeeper-client's operations, watches, sessions and reconnects.
//
// Run as `node client.js DIRECT PROXY PREFIX`: two addresses of one server, of
// which the second can be cut, and a path for this program alone. It exits with
// 1 and prints the failed expectation.
'use strict';

const assert = require('assert').strict;
const zookeeper = require('node-zookeeper-client');
const {ACL, CreateMode, Event, Exception, Id, Permission, State} = zookeeper;

const WAIT = 180000; // timeout of every wait, in milliseconds
const [direct, proxy, prefix] = process.argv.slice(2);

// within fails if a promise takes too long, and names it.
function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${WAIT} ms: ${what}`)), WAIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// call returns a promise of the values that a method passes to its callback.
function call(client, method, ...args) {
  return within(`${method} ${args[0]}`, new Promise((resolve, reject) => {
    client[method](...args, (error, ...values) => error ? reject(error) : resolve(values));
  }));
}

// refused checks that a call fails with a code.
async function refused(code, client, method, ...args) {
  await assert.rejects(call(client, method, ...args), (error) => {
    assert.equal(error.getCode(), code, `${method} ${args[0]}: ${error}`);
    return true;
  });
}

// becomes waits until a session changes to a state.
function becomes(client, state) {
  return within(`state ${state}`, new Promise((resolve) => {
    client.on('state', function listen(now) {
      if (now === state) {
        client.removeListener('state', listen);
        resolve();
      }
    });
  }));
}

// watcher returns a watch function and a promise of its event.
function watcher(what) {
  let fire;
  const event = within(`watch ${what}`, new Promise((resolve) => { fire = resolve; }));
  return {fire, event};
}

async function fired(watch, type, path) {
  const event = await watch.event;
  assert.deepEqual([event.getType(), event.getPath()], [type, path]);
}

async function dial(address, chroot = prefix) {
  const client = zookeeper.createClient(address + chroot, {sessionTimeout: 10000, spinDelay: 50});
  const connected = becomes(client, State.SYNC_CONNECTED);
  client.connect();
  await connected;
  return client;
}

async function hangUp(client) {
  const gone = becomes(client, State.DISCONNECTED);
  client.close();
  await gone;
}

function ask(command) {
  process.stdout.write(command + '\n');
}

async function creates(a) {
  assert.deepEqual(await call(a, 'create', '/c', Buffer.from('x')), ['/c']);
  assert.deepEqual(await call(a, 'create', '/c/s-', CreateMode.PERSISTENT_SEQUENTIAL), ['/c/s-0000000000']);
  assert.deepEqual(await call(a, 'create', '/c/e-', CreateMode.EPHEMERAL_SEQUENTIAL), ['/c/e-0000000001']);
  const [stat] = await call(a, 'exists', '/c/e-0000000001');
  assert.deepEqual(stat.ephemeralOwner, a.getSessionId());
  await refused(Exception.NODE_EXISTS, a, 'create', '/c');
  await refused(Exception.NO_NODE, a, 'create', '/none/child');
  await refused(Exception.NO_CHILDREN_FOR_EPHEMERALS, a, 'create', '/c/e-0000000001/child');
  await refused(Exception.INVALID_ACL, a, 'create', '/c/acl', [new ACL(Permission.ALL, new Id('nosuch', 'x'))]);
  await call(a, 'mkdirp', '/c/x/y/z');
  assert.ok((await call(a, 'exists', '/c/x/y/z'))[0]);
}

async function data(a) {
  await call(a, 'create', '/d', Buffer.from('0'));
  const [changed] = await call(a, 'setData', '/d', Buffer.from('two'), 0);
  assert.equal(changed.version, 1);
  const [value, stat] = await call(a, 'getData', '/d');
  assert.deepEqual([value.toString(), stat.version, stat.dataLength], ['two', 1, 3]);
  await refused(Exception.BAD_VERSION, a, 'setData', '/d', Buffer.from('late'), 0);
  await refused(Exception.NO_NODE, a, 'getData', '/none');
  assert.equal((await call(a, 'exists', '/none'))[0], null);
  await refused(Exception.BAD_VERSION, a, 'remove', '/d', 7);
  await call(a, 'remove', '/d', 1);
  await refused(Exception.NO_NODE, a, 'remove', '/d');
}

async function children(a) {
  await call(a, 'mkdirp', '/k/one');
  await call(a, 'mkdirp', '/k/two');
  const [names, stat] = await call(a, 'getChildren', '/k');
  assert.deepEqual([names.sort(), stat.numChildren, stat.cversion], [['one', 'two'], 2, 2]);
  await refused(Exception.NOT_EMPTY, a, 'remove', '/k');
  await call(a, 'removeRecursive', '/k', -1);
  assert.equal((await call(a, 'exists', '/k'))[0], null);
}

async function acls(a, b) {
  a.addAuthInfo('digest', Buffer.from('ann:secret'));
  await call(a, 'create', '/acl', Buffer.from('v'), ACL.CREATOR_ALL_ACL);
  const [[entry]] = await call(a, 'getACL', '/acl');
  assert.equal(entry.id.scheme, 'digest');
  assert.match(entry.id.id, /^ann:/);
  await refused(Exception.NO_AUTH, b, 'getData', '/acl');
  await refused(Exception.BAD_VERSION, a, 'setACL', '/acl', ACL.READ_ACL_UNSAFE, 9);
  assert.equal((await call(a, 'setACL', '/acl', ACL.READ_ACL_UNSAFE, 0))[0].aversion, 1);
  assert.equal((await call(b, 'getData', '/acl'))[0].toString(), 'v');
  await refused(Exception.NO_AUTH, b, 'setData', '/acl', Buffer.from('w'), -1);
}

function commit(transaction) {
  return within('commit', new Promise((resolve) => {
    transaction.commit((error, results) => resolve({error, results}));
  }));
}

async function transactions(a) {
  const good = await commit(a.transaction()
    .create('/t', Buffer.from('1'))
    .create('/t/s-', CreateMode.EPHEMERAL_SEQUENTIAL)
    .setData('/t', Buffer.from('2'), 0)
    .check('/t', 1)
    .remove('/t/s-0000000000', 0));
  assert.equal(good.error, null);
  assert.equal(good.results[1].path, '/t/s-0000000000');
  const bad = await commit(a.transaction().setData('/t', Buffer.from('3')).check('/t', 99).remove('/t'));
  assert.equal(bad.error.getCode(), Exception.BAD_VERSION);
  assert.equal((await call(a, 'getData', '/t'))[0].toString(), '2');
}

async function watches(a, writer) {
  const born = watcher('of exists');
  await call(a, 'exists', '/w', born.fire);
  await call(writer, 'create', '/w');
  await fired(born, Event.NODE_CREATED, '/w');
  const changed = watcher('of getData');
  const listed = watcher('of getChildren');
  await call(a, 'getData', '/w', changed.fire);
  await call(a, 'getChildren', '/w', listed.fire);
  await call(writer, 'create', '/w/child');
  await fired(listed, Event.NODE_CHILDREN_CHANGED, '/w');
  await call(writer, 'setData', '/w', Buffer.from('x'));
  await fired(changed, Event.NODE_DATA_CHANGED, '/w');
  const gone = watcher('of a deletion');
  await call(a, 'exists', '/w/child', gone.fire);
  await call(writer, 'remove', '/w/child');
  await fired(gone, Event.NODE_DELETED, '/w/child');
}

// Session, ephemerals and watches survive a cut connection.
async function reconnects(writer) {
  const a = await dial(proxy);
  await call(a, 'create', '/e', CreateMode.EPHEMERAL);
  await call(a, 'create', '/r', Buffer.from('1'));
  const session = a.getSessionId();
  const changed = watcher('of what changes while away');
  const born = watcher('kept');
  await call(a, 'getData', '/r', changed.fire);
  await call(a, 'exists', '/later', born.fire);

  const away = becomes(a, State.DISCONNECTED);
  ask('@down');
  await away;
  await call(writer, 'setData', '/r', Buffer.from('2'));
  const back = becomes(a, State.SYNC_CONNECTED);
  ask('@up');
  await back;
  assert.deepEqual(a.getSessionId(), session);
  await fired(changed, Event.NODE_DATA_CHANGED, '/r');
  await call(writer, 'create', '/later');
  await fired(born, Event.NODE_CREATED, '/later');
  assert.ok((await call(writer, 'exists', '/e'))[0]);
  await expires(a, writer);
}

// A session without a connection expires, with its ephemerals.
async function expires(a, writer) {
  const gone = watcher('of the ephemeral');
  await call(writer, 'exists', '/e', gone.fire);
  ask('@down');
  await fired(gone, Event.NODE_DELETED, '/e');
  const expired = becomes(a, State.EXPIRED);
  ask('@up');
  await expired;
  a.close();
}

async function main() {
  const root = await dial(direct, '');
  await call(root, 'create', prefix);
  await hangUp(root);
  const a = await dial(direct);
  const b = await dial(direct);
  await creates(a);
  await data(a);
  await children(a);
  await acls(a, b);
  await transactions(a);
  await watches(a, b);
  await reconnects(b);
  await hangUp(a);
  await hangUp(b);
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
