// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// drainableAnswer returns the status, reason and message of the condition "Drainable" of the named
// pool. nodes is the number of the pool's nodes, and t counts the pods that block the drains of
// these nodes.
func drainableAnswer(pool string, nodes int, t *drain.Tally) answer {
	unknown := ""
	if t.Uncertain > 0 {
		unknown = fmt.Sprintf("it is not known which PodDisruptionBudgets select %s, such as in the namespace %s, because of too many labels, requirements or budgets",
			podCount(t.Uncertain), t.UncertainIn)
	}
	switch worst, others := t.Worst(); {
	case nodes == 0:
		return answer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonNoNodes, message: "the pool has no nodes"}
	case worst != nil:
		message := fmt.Sprintf("%d of %s %s pods that would not leave a drain, or not without harm: %s",
			t.Lasting, nodeCount(nodes), plural(t.Lasting, "has", "have"), groupText(worst))
		if others > 0 {
			message += fmt.Sprintf("; and %d more %s", others, plural(others, "cause", "causes"))
		}
		if unknown != "" {
			message += "; " + unknown
		}
		return answer{status: metav1.ConditionFalse, reason: tidekeeperv1.ReasonPodsStay, message: message + "; see kubectl tide pools blockers " + pool}
	case unknown != "":
		return answer{status: metav1.ConditionUnknown, reason: tidekeeperv1.ReasonPartlyEvaluated, message: unknown}
	default:
		return answer{
			status: metav1.ConditionTrue, reason: tidekeeperv1.ReasonPodsLeave,
			message: "all pods would leave any one node that is drained; volumes and webhooks are not evaluated",
		}
	}
}

// groupText describes a group of pods that block drains: the number of pods, their workload, their
// nodes, and the reason.
func groupText(g *drain.Group) string {
	text := podCount(g.Pods)
	switch {
	case g.Workload != "":
		text += fmt.Sprintf(" of %s in the namespace %s", g.Workload, g.Namespace)
	case g.Namespace != "":
		text += fmt.Sprintf(" without a controller in the namespace %s", g.Namespace)
	}
	text += " on node " + g.Node
	if g.Nodes > 1 {
		text += fmt.Sprintf(" and %d more", g.Nodes-1)
	}
	return text + ": " + reasonText(g)
}

// reasonText describes why pods block the drain of their nodes, and since when.
func reasonText(g *drain.Group) string {
	_, object, _ := strings.Cut(g.Object, "/")
	since := ""
	if g.Since != nil {
		since = " since " + g.Since.UTC().Format(time.RFC3339)
	}
	it, them := plural(g.Pods, "it", "they"), plural(g.Pods, "it", "them")
	switch g.Reason {
	case drain.Budget:
		return fmt.Sprintf("the PodDisruptionBudget %s has allowed no disruption%s", object, since)
	case drain.SeveralBudgets:
		return fmt.Sprintf("several PodDisruptionBudgets, such as %s, select %s, so that each eviction fails", object, them)
	case drain.Terminating:
		return fmt.Sprintf("deleted, and should have been gone%s", since)
	case drain.Finalizer:
		return fmt.Sprintf("%s %s finalizers, and %s until these are removed", it, plural(g.Pods, "has", "have"), plural(g.Pods, "stays", "stay"))
	case drain.LongGrace:
		return fmt.Sprintf("%s may take longer than %d minutes to end", it, drain.MostGrace/time.Minute)
	case drain.NoController:
		return fmt.Sprintf("nothing creates %s again", them)
	case drain.LocalData:
		return fmt.Sprintf("the data of %s emptyDir volumes would be lost", plural(g.Pods, "its", "their"))
	case drain.NoPlace:
		return fmt.Sprintf("no other node has room for %s", them)
	default:
		return string(g.Reason)
	}
}
