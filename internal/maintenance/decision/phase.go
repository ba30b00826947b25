// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// phases decides about each node whose drain has begun, depending on the phase of the node.
type phases struct{ state *state }

// advance decides about the named node according to its phase in the status. It does nothing if the
// node is not in maintenance.
func (d *phases) advance(name string) {
	p := d.state.status.Nodes[name]
	if !IsRunning(p) {
		return
	}
	n, exists := d.state.Nodes[name]
	if !exists || n.UID != p.UID {
		d.gone(name, &p)
		d.state.set(name, p)
		return
	}
	switch p.Phase {
	case tidekeeperv1.NodeDraining:
		if !p.Cordoned {
			d.claimed(n, p)
			return
		}
		if d.released(n, &p) {
			break
		}
		d.draining(n, &p)
	case tidekeeperv1.NodeDrained:
		if !d.released(n, &p) {
			d.drained(n, &p)
		}
	case tidekeeperv1.NodeReturning:
		d.returning(n, &p)
	case tidekeeperv1.NodeFailed:
		d.failed(n, &p)
	}
	d.state.set(name, p)
}

// gone ends the maintenance of a node that was deleted, or replaced by a Node with another UID.
func (d *phases) gone(name string, p *tidekeeperv1.NodeProgress) {
	failed := p.Phase == tidekeeperv1.NodeFailed
	p.Cordoned = false
	switch {
	case failed:
	case p.Phase == tidekeeperv1.NodeDraining:
		d.state.enter(p, tidekeeperv1.NodeReleased, tidekeeperv1.ReasonNodeDeleted, "the Node was deleted while it was being drained")
		d.state.report(name, tidekeeperv1.EventNodeReleased, p.Message, true)
	default:
		d.state.enter(p, tidekeeperv1.NodeDone, tidekeeperv1.ReasonNodeDeleted, "the drained Node was deleted")
		d.state.report(name, tidekeeperv1.EventNodeReturned, p.Message, false)
	}
}

// claimed decides about a node whose drain is recorded in the status, but whose cordon is not
// recorded there yet. It cordons the node, or drops the drain if the drain may no longer begin.
func (d *phases) claimed(n Node, p tidekeeperv1.NodeProgress) {
	switch {
	case n.CordonedFor == string(d.state.Maintenance.UID):
		p.Cordoned = true
		if d.released(n, &p) {
			d.state.set(n.Name, p)
			return
		}
		d.state.report(n.Name, tidekeeperv1.EventDrainStarted, "cordoned for maintenance; its pods are being moved", false)
		d.draining(n, &p)
		d.state.set(n.Name, p)
	case n.Unschedulable || n.Foreign != "" || n.CordonedFor != "" || n.Deleting || d.held():
		// The drain is dropped from the status. It may begin later, because the node was not
		// patched.
		delete(d.state.status.Nodes, n.Name)
	default:
		d.state.act(Cordon, n)
	}
}

// released reports whether another client has uncordoned a node. If so, it ends the maintenance of
// the node.
func (d *phases) released(n Node, p *tidekeeperv1.NodeProgress) bool {
	if n.CordonedFor == string(d.state.Maintenance.UID) && n.Unschedulable {
		return false
	}
	p.Cordoned = false
	d.state.enter(p, tidekeeperv1.NodeReleased, tidekeeperv1.ReasonUncordoned, "another client uncordoned the node; it is left alone for this round")
	d.state.report(n.Name, tidekeeperv1.EventNodeReleased, p.Message, false)
	return true
}

// held reports whether a Freeze or spec.suspend holds back drains.
func (d *phases) held() bool { return d.state.spec.Suspend || d.state.Frozen != "" }

// draining decides about a cordoned node whose pods may not all have left yet.
func (d *phases) draining(n Node, p *tidekeeperv1.NodeProgress) {
	d.state.out.Watched = append(d.state.out.Watched, n.Name)
	state, known := d.state.Drains[n.Name]
	known = known && state.UID == n.UID
	if known && state.Empty {
		p.BootID, p.KubeletVersion = n.BootID, n.KubeletVersion
		d.state.enter(p, tidekeeperv1.NodeDrained, tidekeeperv1.ReasonWaitingForMaintenance, waitsFor(d.state.spec.Until))
		d.state.report(n.Name, tidekeeperv1.EventNodeDrained, "drained for maintenance; "+p.Message, false)
		d.drained(n, p)
		return
	}
	if d.held() {
		if p.HeldSince == nil {
			p.HeldSince = &metav1.Time{Time: d.state.Now.Truncate(time.Second)}
		}
		p.Reason, p.Message = tidekeeperv1.ReasonSuspended, "spec.suspend is true"
		if d.state.Frozen != "" {
			p.Reason, p.Message = tidekeeperv1.ReasonFrozen, d.state.Frozen
			d.state.wake(d.state.FrozenUntil)
		}
		return
	}
	if p.HeldSince != nil {
		p.Since.Time = p.Since.Add(d.state.Now.Truncate(time.Second).Sub(p.HeldSince.Time))
		p.HeldSince = nil
	}
	end := p.Since.Add(seconds(d.state.spec.DrainTimeoutSeconds))
	p.Reason, p.Message = tidekeeperv1.ReasonPodsLeaving, ""
	if known && state.Reason != "" {
		p.Reason, p.Message = state.Reason, state.Message
	}
	if d.state.Now.Before(end) {
		d.state.wake(end)
		d.state.out.Draining = append(d.state.out.Draining, n.Name)
		return
	}
	why := p.Message
	if why == "" {
		why = "pods were still leaving"
	}
	p.Cordoned = false // The node is uncordoned by sweep.
	d.state.enter(p, tidekeeperv1.NodeFailed, tidekeeperv1.ReasonDrainTimeout, "not empty in time: "+why)
	d.state.report(n.Name, tidekeeperv1.EventNodeMaintenanceFailed, p.Message, true)
}

// waitsFor describes, for messages, the event that completes the maintenance of a drained node.
func waitsFor(end tidekeeperv1.MaintenanceEnd) string {
	switch end {
	case tidekeeperv1.UntilRebooted:
		return "waits until the node is rebooted"
	case tidekeeperv1.UntilUpgraded:
		return "waits until the version of the kubelet changes"
	case tidekeeperv1.UntilReplaced:
		return "waits until the Node is deleted"
	case tidekeeperv1.UntilDrained:
		return "it is used again at once"
	default:
		return "waits until the annotation " + tidekeeperv1.DrainedForMaintenanceAnnotation + " is removed"
	}
}

// drained decides about a drained node. It marks the node as drained, and waits until its
// maintenance is complete or times out.
func (d *phases) drained(n Node, p *tidekeeperv1.NodeProgress) {
	if d.isMaintained(n, p) {
		d.state.enter(p, tidekeeperv1.NodeReturning, tidekeeperv1.ReasonNodeNotReady, "waits until the node and its pods of DaemonSets are ready")
		d.returning(n, p)
		return
	}
	if n.DrainedFor == d.state.Maintenance.Name {
		p.Marked = true
	} else {
		d.state.act(MarkDrained, n)
	}
	d.timeOut(n, p)
}

// isMaintained reports whether the maintenance of a drained node is complete, because the event in
// spec.until has occurred or the annotation of drained nodes has been removed.
func (d *phases) isMaintained(n Node, p *tidekeeperv1.NodeProgress) bool {
	if (p.Marked || n.Labeled) && n.DrainedFor != d.state.Maintenance.Name {
		// The annotation has been removed. The label is written together with the annotation. It
		// shows that the annotation existed even if the manager crashed before it recorded this in
		// the status.
		return true
	}
	switch d.state.spec.Until {
	case tidekeeperv1.UntilRebooted:
		return n.BootID != p.BootID
	case tidekeeperv1.UntilUpgraded:
		return n.KubeletVersion != p.KubeletVersion
	case tidekeeperv1.UntilDrained:
		return true
	default:
		return false
	}
}

// returning decides about a node whose maintenance is complete. It uncordons the node once the node
// and its pods of DaemonSets are ready.
func (d *phases) returning(n Node, p *tidekeeperv1.NodeProgress) {
	if n.CordonedFor != string(d.state.Maintenance.UID) {
		p.Cordoned = false
		d.state.enter(p, tidekeeperv1.NodeDone, "", "")
		d.state.report(n.Name, tidekeeperv1.EventNodeReturned, "maintained, and in use again", false)
		return
	}
	d.state.out.Watched = append(d.state.out.Watched, n.Name)
	state, known := d.state.Drains[n.Name]
	if !n.Unschedulable || n.Ready && known && state.UID == n.UID && state.Settled {
		d.state.act(Uncordon, n)
		return
	}
	d.timeOut(n, p)
}

// timeOut ends the maintenance of a node that was not maintained, or did not become ready again,
// before the timeout. The node stays cordoned.
func (d *phases) timeOut(n Node, p *tidekeeperv1.NodeProgress) {
	end := p.Since.Add(seconds(d.state.spec.MaintenanceTimeoutSeconds))
	if d.state.Now.Before(end) {
		d.state.wake(end)
		return
	}
	message := "not ready in time after its maintenance"
	if p.Phase == tidekeeperv1.NodeDrained {
		message = "drained, and not maintained in time: " + waitsFor(d.state.spec.Until)
	}
	d.state.enter(p, tidekeeperv1.NodeFailed, tidekeeperv1.ReasonMaintenanceTimeout, message)
	d.state.report(n.Name, tidekeeperv1.EventNodeMaintenanceFailed, p.Message, true)
}

// failed decides about a node that is still cordoned after its maintenance timed out. The node is
// no longer in maintenance once another client has uncordoned it, or once it is ready and its
// maintenance is complete. In the second case, [rounds.sweep] then uncordons it.
func (d *phases) failed(n Node, p *tidekeeperv1.NodeProgress) {
	if n.CordonedFor != string(d.state.Maintenance.UID) || !n.Unschedulable || n.Ready && d.isMaintained(n, p) {
		p.Cordoned = false // The marks are removed by sweep.
	}
}
