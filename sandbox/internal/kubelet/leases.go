// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	leaseDuration = 40 * time.Second
	// renewEvery is the interval at which node leases are renewed. The controller manager considers
	// a node dead after 50 s, which leaves time for at least two attempts. A real kubelet renews
	// its lease every 10 s. For 1,000 nodes, this would mean 100 writes per second, too many for a
	// small machine.
	renewEvery = 20 * time.Second
	// pace is the interval at which the leases to renew next are selected.
	pace = 100 * time.Millisecond
	// tryAgain is the delay after which a failed renewal of a lease is retried.
	tryAgain = 5 * time.Second
	// requestTimeout is the timeout of a request, the same as a kubelet's. It leaves time for
	// another attempt before the node is considered dead.
	requestTimeout = 10 * time.Second
	// renewers is the number of leases that are renewed concurrently. It is enough for 5,000 nodes
	// if each write takes 50 ms.
	renewers = 16
)

// leases renews the Leases of all simulated nodes, which show that their kubelets are alive.
type leases struct {
	client kubernetes.Interface

	mu     sync.Mutex
	leases map[string]*lease
}

type lease struct {
	node *corev1.Node
	due  time.Time
	// busy is set while the lease is being renewed.
	busy  bool
	known *coordinationv1.Lease
}

func newLeases(client kubernetes.Interface) *leases {
	return &leases{client: client, leases: map[string]*lease{}}
}

// keep begins to renew a node's lease, unless it is already being renewed.
func (l *leases) keep(n *corev1.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.leases[n.Name]; ok && old.node.UID == n.UID {
		return
	}
	l.leases[n.Name] = &lease{node: n}
}

// forget stops renewing a node's lease. The garbage collector deletes the lease of a deleted node.
func (l *leases) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, node)
}

// run renews all leases before they expire, until the context is done. It limits the renewals per
// interval, so that the renewals of nodes that were added together spread out over time.
func (l *leases) run(ctx context.Context) {
	work := make(chan *lease)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range renewers {
		workers.Go(func() {
			for entry := range work {
				err := l.renew(ctx, entry)
				if err != nil && ctx.Err() == nil {
					klog.ErrorS(err, "The lease will be renewed later", "node", entry.node.Name)
				}
				l.renewed(entry, time.Now(), err)
			}
		})
	}
	defer close(work)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, entry := range l.due(time.Now()) {
			select {
			case <-ctx.Done():
				return
			case work <- entry:
			}
		}
	}
}

// due returns the leases to renew now, in the order in which they became due, and marks them as
// busy. It returns at most twice as many leases as become due in an average interval of "pace".
func (l *leases) due(now time.Time) []*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := max(1, len(l.leases)*2*int(pace)/int(renewEvery))
	var list []*lease
	for _, entry := range l.leases {
		if !entry.busy && !now.Before(entry.due) {
			list = append(list, entry)
		}
	}
	slices.SortFunc(list, func(a, b *lease) int { return a.due.Compare(b.due) })
	list = list[:min(share, len(list))]
	for _, entry := range list {
		entry.busy = true
	}
	return list
}

// renewed records the result of a renewal, and sets the time of the lease's next renewal.
func (l *leases) renewed(entry *lease, now time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.busy, entry.due = false, now.Add(renewEvery)
	if err != nil {
		entry.due = now.Add(tryAgain)
	}
}

// renew renews a node's lease by writing it without reading it first. If the lease already exists
// or another client has changed it, renew reads the lease and writes again.
func (l *leases) renew(ctx context.Context, entry *lease) error {
	now := metav1.NewMicroTime(time.Now())
	written, err := l.write(ctx, entry, now)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		if entry.known, err = l.read(ctx, entry.node.Name); err == nil {
			written, err = l.write(ctx, entry, now)
		}
	}
	if err != nil {
		// The write may have succeeded in spite of the error. Forget the known lease, so that the
		// next attempt tries to create the lease, and reads it if it already exists.
		entry.known = nil
		return err
	}
	entry.known = written
	return nil
}

func (l *leases) read(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
}

func (l *leases) write(ctx context.Context, entry *lease, now metav1.MicroTime) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	api := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if entry.known == nil {
		return api.Create(ctx, newLease(entry.node, now), metav1.CreateOptions{})
	}
	update := entry.known.DeepCopy()
	update.Spec.RenewTime = &now
	return api.Update(ctx, update, metav1.UpdateOptions{})
}

func newLease(n *corev1.Node, renewed metav1.MicroTime) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      n.Name,
			Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &n.Name,
			LeaseDurationSeconds: new(int32(leaseDuration.Seconds())),
			RenewTime:            &renewed,
		},
	}
}
