// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// fleet is all pools, nodes and pods as one model that the informers feed and
// the controllers ask. It knows at any moment which pools have to do with which
// node, which nodes are not as they should be, and the sums of resources per
// node and pool, all of it kept up event by event: no answer needs a walk over
// the world.
//
// What is fed in is answered with what has to be looked at because of it. All
// methods may be called from several goroutines.
type fleet struct {
	mu sync.Mutex

	registry *registry
	shapes   shapes

	pools map[string]*poolState
	nodes map[string]*nodeState
	pods  map[types.UID]podState

	// traces is what the records on the nodes say of each pool, existing or not.
	traces map[string]*trace

	// telling: joining and leaving is news. It is not while the model is being
	// filled, nor for a manager that is not the leader.
	telling bool

	// todo collects what the running method will answer.
	todo todo
}

// todo is what has to be looked at because of a change.
type todo struct {
	// nodes that are not as they should be.
	nodes sets.Set[string]
	// pools whose membership, readiness, conditions or deletion may have
	// something new.
	pools sets.Set[string]
	// levels are pools of which only the water level has changed.
	levels sets.Set[string]
}

type poolState struct {
	object   *tidekeeperv1.NodePool
	selector labels.Selector
	// invalid is why the pool selects nothing, if it cannot.
	invalid error

	members sets.Set[string]
	ready   int

	capacity, allocatable, requested sums

	// unshaped are members that do not look like the pool yet, heldBack those
	// of them that wait for a NoExecute taint, and admitted those that may get
	// it now.
	unshaped, heldBack, admitted sets.Set[string]

	// conflicts of the pool with older ones, by node.
	conflicts map[string][]conflict

	// writing is how many nodes are being written to with this pool in mind.
	writing int

	news news
}

type nodeState struct {
	name string
	// object is nil as long as the node is only known from its pods.
	object *corev1.Node

	ready                 bool
	capacity, allocatable []amount
	requested             sums
	pods                  int

	// pools that select the node.
	pools []*poolState
	// record as the node carries it; empty if it is unreadable.
	record record
	// outlook is what is to be known of the plan for the node.
	outlook outlook
	// writes is how often the node may be written; nil before the first time.
	writes *rate.Limiter
}

// podState is all that is kept of a pod.
type podState struct {
	node  *nodeState
	shape *shape
}

// trace is what the records on the nodes say of a pool.
type trace struct {
	nodes sets.Set[string]
	slots map[slot]int
}

func newFleet() *fleet {
	return &fleet{
		registry: newRegistry(),
		shapes:   shapes{},
		pools:    map[string]*poolState{},
		nodes:    map[string]*nodeState{},
		pods:     map[types.UID]podState{},
		traces:   map[string]*trace{},
		todo:     newTodo(),
	}
}

func newTodo() todo {
	return todo{nodes: sets.New[string](), pools: sets.New[string](), levels: sets.New[string]()}
}

// lock begins a method; its answer is made by unlock.
func (f *fleet) lock() { f.mu.Lock() }

func (f *fleet) unlock() todo {
	done := f.todo
	f.todo = newTodo()
	f.mu.Unlock()
	return done
}

// setPool takes in a pool that was created or changed.
func (f *fleet) setPool(pool *tidekeeperv1.NodePool) todo {
	f.lock()
	f.put(pool)
	return f.unlock()
}

func (f *fleet) put(pool *tidekeeperv1.NodePool) {
	f.todo.pools.Insert(pool.Name)
	p, known := f.pools[pool.Name]
	if known && p.object.UID != pool.UID {
		// Deleted and made again; the deletion was never told.
		f.drop(pool.Name)
		known = false
	}
	if !known {
		p = &poolState{
			members: sets.New[string](), unshaped: sets.New[string](), heldBack: sets.New[string](),
			admitted: sets.New[string](), conflicts: map[string][]conflict{},
		}
		f.pools[pool.Name] = p
	}
	old := p.object
	p.object = pool

	affected := sets.New[string]()
	if old == nil || !equality.Semantic.DeepEqual(old.Spec.Selector, pool.Spec.Selector) {
		affected = affected.Union(p.members)
		p.selector, p.invalid = Selector(pool)
		for _, n := range f.nodes {
			f.enrol(n)
		}
	}
	if old == nil || actsDifferently(old, pool) {
		affected = affected.Union(p.members)
		if t := f.traces[pool.Name]; t != nil {
			affected = affected.Union(t.nodes)
		}
	}
	for name := range affected {
		f.replan(f.nodes[name])
	}
}

// actsDifferently tells whether two versions of a pool may plan differently
// for a node.
func actsDifferently(a, b *tidekeeperv1.NodePool) bool {
	return a.Generation != b.Generation ||
		a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		inForce(a) != inForce(b) ||
		!equality.Semantic.DeepEqual(a.Status.Managed, b.Status.Managed)
}

// deletePool takes in that a pool is gone.
func (f *fleet) deletePool(name string) todo {
	f.lock()
	f.drop(name)
	return f.unlock()
}

func (f *fleet) drop(name string) {
	p, known := f.pools[name]
	if !known {
		return
	}
	delete(f.pools, name)
	f.todo.pools.Insert(name)
	affected := p.members.Clone()
	if t := f.traces[name]; t != nil {
		affected = affected.Union(t.nodes)
	}
	for node := range affected {
		n := f.nodes[node]
		n.pools = slices.DeleteFunc(n.pools, func(other *poolState) bool { return other == p })
		f.replan(n)
	}
}

// setNode takes in a node that was created or changed.
func (f *fleet) setNode(node *corev1.Node) todo {
	f.lock()
	n := f.node(node.Name)
	old := n.object
	n.object = node

	if ready := isReady(node); ready != n.ready {
		for _, p := range n.pools {
			p.ready += sign(ready)
			f.todo.pools.Insert(p.object.Name)
		}
		n.ready = ready
	}
	if old == nil || !sameAmounts(old.Status.Capacity, node.Status.Capacity) {
		f.resize(n, &n.capacity, f.registry.amounts(node.Status.Capacity), func(p *poolState) *sums { return &p.capacity })
	}
	if old == nil || !sameAmounts(old.Status.Allocatable, node.Status.Allocatable) {
		f.resize(n, &n.allocatable, f.registry.amounts(node.Status.Allocatable), func(p *poolState) *sums { return &p.allocatable })
	}
	if old == nil || !maps.Equal(old.Labels, node.Labels) {
		f.enrol(n)
	}
	if old == nil || old.Annotations[tidekeeperv1.RecordAnnotation] != node.Annotations[tidekeeperv1.RecordAnnotation] {
		f.trace(n, -1)
		// What cannot be read tells nothing; the plan puts it right.
		n.record, _ = parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
		f.trace(n, +1)
	}
	if old == nil || !maps.Equal(old.Labels, node.Labels) || !maps.Equal(old.Annotations, node.Annotations) ||
		!equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) {
		f.replan(n)
	}
	return f.unlock()
}

// deleteNode takes in that a node is gone.
func (f *fleet) deleteNode(name string) todo {
	f.lock()
	if n, known := f.nodes[name]; known && n.object != nil {
		f.trace(n, -1)
		n.object, n.record = nil, nil
		f.enrol(n)
		f.replan(n)
		n.capacity, n.allocatable, n.ready, n.writes = nil, nil, false, nil
		f.forget(n)
	}
	return f.unlock()
}

// setPod takes in a pod that was created or changed.
func (f *fleet) setPod(pod *corev1.Pod) todo {
	f.lock()
	if pod.Spec.NodeName == "" || terminal(pod) {
		f.removePod(pod.UID)
		return f.unlock()
	}
	n := f.node(pod.Spec.NodeName)
	now := podState{node: n, shape: f.shapes.take(f.registry.requests(pod))}
	before, known := f.pods[pod.UID]
	if before == now {
		f.shapes.release(now.shape)
		return f.unlock()
	}
	f.pods[pod.UID] = now
	now.node.pods++
	f.request(n, now.shape.amounts, +1)
	if known {
		f.release(before)
	}
	return f.unlock()
}

// deletePod takes in that a pod is gone.
func (f *fleet) deletePod(uid types.UID) todo {
	f.lock()
	f.removePod(uid)
	return f.unlock()
}

func (f *fleet) removePod(uid types.UID) {
	if pod, known := f.pods[uid]; known {
		delete(f.pods, uid)
		f.release(pod)
	}
}

// release takes what a pod requested off its node again.
func (f *fleet) release(pod podState) {
	pod.node.pods--
	f.request(pod.node, pod.shape.amounts, -1)
	f.shapes.release(pod.shape)
	f.forget(pod.node)
}

// request adds amounts to what the pods of a node request, or takes them off.
func (f *fleet) request(n *nodeState, amounts []amount, sign int) {
	n.requested.apply(amounts, sign)
	for _, p := range n.pools {
		p.requested.apply(amounts, sign)
		f.todo.levels.Insert(p.object.Name)
	}
}

func (f *fleet) node(name string) *nodeState {
	n, known := f.nodes[name]
	if !known {
		n = &nodeState{name: name}
		f.nodes[name] = n
	}
	return n
}

// forget drops a node that neither exists nor has pods.
func (f *fleet) forget(n *nodeState) {
	if n.object == nil && n.pods == 0 {
		delete(f.nodes, n.name)
	}
}

// resize puts other amounts in the place of a node's, in its pools' sums too.
func (f *fleet) resize(n *nodeState, of *[]amount, to []amount, in func(*poolState) *sums) {
	for _, p := range n.pools {
		in(p).subtract(*of)
		in(p).add(to)
		f.todo.levels.Insert(p.object.Name)
	}
	*of = to
}

// enrol makes the node a member of the pools that select it now, and of no
// others.
func (f *fleet) enrol(n *nodeState) {
	var now []*poolState
	if n.object != nil {
		now = slices.Collect(f.selecting(n.object))
	}
	for _, p := range n.pools {
		if !slices.Contains(now, p) {
			f.move(p, n, -1)
		}
	}
	for _, p := range now {
		if !slices.Contains(n.pools, p) {
			f.move(p, n, +1)
		}
	}
	n.pools = now
}

// selecting yields the pools that select a node.
func (f *fleet) selecting(node *corev1.Node) iter.Seq[*poolState] {
	return func(yield func(*poolState) bool) {
		for _, p := range f.pools {
			if p.selector != nil && p.selector.Matches(labels.Set(node.Labels)) && !yield(p) {
				return
			}
		}
	}
}

// move lets a node join a pool (+1) or leave it (-1).
func (f *fleet) move(p *poolState, n *nodeState, sign int) {
	if sign > 0 {
		p.members.Insert(n.name)
	} else {
		p.members.Delete(n.name)
	}
	if n.ready {
		p.ready += sign
	}
	p.capacity.apply(n.capacity, sign)
	p.allocatable.apply(n.allocatable, sign)
	p.requested.addSums(n.requested, sign)
	f.todo.pools.Insert(p.object.Name)
	if f.telling && p.object.DeletionTimestamp.IsZero() {
		p.news.moved(n.name, sign)
	}
}

// trace adds what the node's record says to the traces (+1), or takes it off.
func (f *fleet) trace(n *nodeState, sign int) {
	for pool, holding := range n.record {
		t := f.traces[pool]
		if t == nil {
			t = &trace{nodes: sets.New[string](), slots: map[slot]int{}}
			f.traces[pool] = t
		}
		if sign > 0 {
			t.nodes.Insert(n.name)
		} else {
			t.nodes.Delete(n.name)
		}
		for s := range holding {
			t.slots[s] += sign
			if t.slots[s] == 0 {
				delete(t.slots, s)
			}
		}
		if len(t.nodes) == 0 {
			delete(f.traces, pool)
		}
		f.todo.pools.Insert(pool)
	}
}

// replan decides anew what has to be done to a node, and keeps what others ask
// about it: the plan itself is made again by who carries it out.
func (f *fleet) replan(n *nodeState) {
	old := n.outlook
	n.outlook = outlook{}
	if n.object != nil {
		plan := planNode(n.object, f.claims(n.object, n.record))
		n.outlook = plan.outlook()
		if n.outlook.due {
			f.todo.nodes.Insert(n.name)
		}
	}
	f.mark(n.name, old.unshaped, n.outlook.unshaped, func(p *poolState) sets.Set[string] { return p.unshaped })
	f.mark(n.name, old.heldBack, n.outlook.heldBack, func(p *poolState) sets.Set[string] { return p.heldBack })
	for _, pool := range old.evicts {
		// The taint is there, or no longer asked for: should it ever be put
		// on this node again, it waits its turn again.
		if p := f.pools[pool]; p != nil && !slices.Contains(n.outlook.evicts, pool) {
			p.admitted.Delete(n.name)
		}
	}
	if slices.Equal(old.conflicts, n.outlook.conflicts) {
		return
	}
	for _, c := range old.conflicts {
		if p := f.pools[c.pool]; p != nil {
			delete(p.conflicts, n.name)
			f.todo.pools.Insert(c.pool)
		}
	}
	for _, c := range n.outlook.conflicts {
		p := f.pools[c.pool]
		p.conflicts[n.name] = append(p.conflicts[n.name], c)
		f.todo.pools.Insert(c.pool)
	}
}

// mark moves a node's name from the sets of some pools to those of others.
func (f *fleet) mark(node string, from, to []string, set func(*poolState) sets.Set[string]) {
	if slices.Equal(from, to) {
		return
	}
	for _, pool := range from {
		if p := f.pools[pool]; p != nil {
			f.todo.pools.Insert(pool)
			set(p).Delete(node)
		}
	}
	for _, pool := range to {
		f.todo.pools.Insert(pool)
		set(f.pools[pool]).Insert(node)
	}
}

// claims returns the pools that have to do with a node: those that select it,
// and those of which its record tells.
func (f *fleet) claims(node *corev1.Node, r record) []claim {
	var claims []claim
	for p := range f.selecting(node) {
		claims = append(claims, claim{pool: p.object, member: p.object.DeletionTimestamp.IsZero(), mayEvict: p.admitted.Has(node.Name)})
	}
	for pool := range r {
		p := f.pools[pool]
		if p == nil || slices.ContainsFunc(claims, func(c claim) bool { return c.pool == p.object }) {
			continue
		}
		claims = append(claims, claim{pool: p.object})
	}
	return claims
}

// begin opens a write to the node, which may be newer than what the model
// knows: it returns the plan, and a function that closes the write again. In
// between, none of the pools that had a say in the plan is seen as clean.
func (f *fleet) begin(node *corev1.Node) (nodePlan, func() todo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
	claims := f.claims(node, r)
	for _, c := range claims {
		f.pools[c.pool.Name].writing++
	}
	plan := planNode(node, claims)
	return plan, func() todo {
		f.lock()
		for _, c := range claims {
			p := f.pools[c.pool.Name]
			if p == nil || p.object.UID != c.pool.UID {
				continue
			}
			p.writing--
			if p.writing == 0 {
				f.todo.levels.Insert(c.pool.Name)
			}
		}
		return f.unlock()
	}
}

// wrote takes in that a plan was carried out on a node, for the news.
func (f *fleet) wrote(node string, plan *nodePlan) todo {
	f.lock()
	for _, c := range plan.changes {
		if p := f.pools[c.pool]; p != nil {
			p.news.changed(node, c)
			f.todo.levels.Insert(c.pool)
		}
	}
	return f.unlock()
}

// failed takes in that a node could not be written, for the news.
func (f *fleet) failed(node string, plan *nodePlan, err error) todo {
	f.lock()
	for _, pool := range plan.unshaped {
		if p := f.pools[pool]; p != nil {
			p.news.failed(node, err)
			f.todo.levels.Insert(pool)
		}
	}
	return f.unlock()
}

// fought takes in that a node is written so often that the plan has to wait, for
// the news.
func (f *fleet) fought(node string, plan *nodePlan) todo {
	f.lock()
	for _, c := range plan.changes {
		if p := f.pools[c.pool]; p != nil {
			p.news.foughtOver(node)
			f.todo.levels.Insert(c.pool)
		}
	}
	return f.unlock()
}

// admit lets the pool's NoExecute taints reach these nodes.
func (f *fleet) admit(pool string, nodes []string) todo {
	f.lock()
	if p := f.pools[pool]; p != nil {
		for _, name := range nodes {
			if n, known := f.nodes[name]; known && p.heldBack.Has(name) {
				p.admitted.Insert(name)
				f.replan(n)
			}
		}
	}
	return f.unlock()
}

// evictees returns the members of a pool with NoExecute taints as
// [nextEvictions] wants to see them, but for their victims, and which of them
// have to be looked at for that: the others count as without any.
func (f *fleet) evictees(pool string) (list []evictee, look sets.Set[string]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	look = sets.New[string]()
	p := f.pools[pool]
	if p == nil || len(p.heldBack) == 0 {
		return nil, look
	}
	taints := evicting(p.object)
	for name := range p.members {
		n := f.nodes[name]
		e := evictee{
			node:     name,
			waiting:  p.heldBack.Has(name),
			admitted: p.admitted.Has(name),
			since:    lastEviction(n.object, taints),
		}
		if n.pods > 0 && (e.waiting || !e.since.IsZero()) {
			look.Insert(name)
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b evictee) int { return cmp.Compare(a.node, b.node) })
	return list, look
}

// everything returns all there is to look at, for a controller that starts. It
// also makes what happens from now on news.
func (f *fleet) everything() todo {
	f.lock()
	for name, n := range f.nodes {
		if n.outlook.due {
			f.todo.nodes.Insert(name)
		}
	}
	for name := range f.pools {
		f.todo.pools.Insert(name)
	}
	return f.unlock()
}

// tell makes joining and leaving news from now on. What happened while nobody
// told is told now, as far as the records show it.
func (f *fleet) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.telling {
		return
	}
	f.telling = true
	for name, p := range f.pools {
		if !p.object.DeletionTimestamp.IsZero() {
			continue
		}
		recorded := sets.New[string]()
		if t := f.traces[name]; t != nil {
			recorded = t.nodes
		}
		for node := range p.members.Intersection(p.unshaped).Difference(recorded) {
			p.news.moved(node, +1)
		}
		for node := range recorded.Difference(p.members) {
			p.news.moved(node, -1)
		}
	}
}

// poolNames returns the names of all pools.
func (f *fleet) poolNames() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.pools))
}

// view is a pool as it stands.
type view struct {
	pool *tidekeeperv1.NodePool
	// invalid is why the pool selects nothing, if it cannot.
	invalid error

	nodes, ready                     int
	capacity, allocatable, requested corev1.ResourceList
	percent                          map[corev1.ResourceName]int32

	// unshaped is how many members do not look like the pool yet, heldBack how
	// many of them wait for a NoExecute taint.
	unshaped, heldBack int

	// conflicted is how many members have a key that an older pool has; first
	// is one such conflict.
	conflicted int
	first      conflict

	// carriers is how many nodes have something of the pool on record, held
	// what that is.
	carriers int
	held     sets.Set[slot]
	// writing tells whether a node is being written to with the pool in mind.
	writing bool
}

// view returns a pool as it stands, or false if there is none of that name.
func (f *fleet) view(name string) (view, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, known := f.pools[name]
	if !known {
		return view{}, false
	}
	v := view{
		pool:        p.object,
		invalid:     p.invalid,
		nodes:       len(p.members),
		ready:       p.ready,
		capacity:    f.registry.list(p.capacity),
		allocatable: f.registry.list(p.allocatable),
		requested:   f.registry.list(p.requested),
		percent:     f.registry.percent(p.requested, p.allocatable),
		unshaped:    len(p.unshaped),
		heldBack:    len(p.heldBack),
		conflicted:  len(p.conflicts),
		held:        sets.New[slot](),
		writing:     p.writing > 0,
	}
	if len(p.conflicts) > 0 {
		v.first = p.conflicts[slices.Min(slices.Collect(maps.Keys(p.conflicts)))][0]
	}
	if t := f.traces[name]; t != nil {
		v.carriers = len(t.nodes)
		for s := range t.slots {
			v.held.Insert(s)
		}
	}
	return v, true
}

// takeNews returns what there is to tell of the pool at this time, and after how
// long to ask again if something is not ripe yet.
func (f *fleet) takeNews(pool string, now time.Time) ([]announcement, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, known := f.pools[pool]
	if !known {
		return nil, 0
	}
	return p.news.tell(now)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// sameAmounts tells whether two lists say the same. A heartbeat of a node asks, so
// it must be cheap.
func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, resource.Quantity.Equal)
}

func sign(up bool) int {
	if up {
		return +1
	}
	return -1
}
