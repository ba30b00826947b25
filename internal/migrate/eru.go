// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// eruSpec is the spec of an Eru. The original operator's JSON field is deploymentname, but
// deploymentName, the name of its Go field, is accepted, too.
type eruSpec struct {
	Deploymentname string `json:"deploymentname"`
	DeploymentName string `json:"deploymentName"`
	Enabled        bool   `json:"enabled"`
	Schedule       string `json:"schedule"`
}

// restart holds the converted values of an Eru's spec.
type restart struct {
	deployment         string
	enabled            bool
	schedule, timeZone string
}

// restarts converts Erus, and Deployments with the annotation that requests an Eru.
//
// If the original operator created an Eru because of its Deployment's annotation, restarts converts
// the annotation instead of the Eru. Tidekeeper then creates a ScheduledRestart for the annotation,
// and this ScheduledRestart is deleted together with the Deployment, as the Eru was.
func (result *Result) restarts(erus, deployments map[key]Object, options Options) {
	unzoned := 0
	targets := map[key]string{}
	for _, o := range sorted(erus) {
		r := &remarks{object: describe(o)}
		desired, ok := readEru(o, r)
		if ok {
			targets[keyOf(o)] = desired.deployment
			if desired.timeZone == "" {
				unzoned++
				desired.timeZone = cmp.Or(options.TimeZone, tidekeeperv1.DefaultTimeZone)
			}
			desired.enabled = desired.enabled && !options.Suspended
			if deployment, found := deployments[keyOf(o)]; found && desired.deployment == o.GetName() && optsIn(deployment) {
				result.optIn(o, deployment, desired, options, r)
			} else {
				result.restart(o, desired, deployments, options, r)
			}
		}
		result.Remarks = append(result.Remarks, r.list...)
	}
	for _, o := range sorted(deployments) {
		r := &remarks{object: describe(o)}
		_, found := erus[keyOf(o)]
		target, read := targets[keyOf(o)]
		switch {
		case read && optsIn(o) && target != o.GetName():
			r.leftOut(index("metadata.annotations", OptInAnnotation), "the Eru of its name is for another Deployment", "rename one of the two")
		case found || !mentioned(o):
		case !optsIn(o):
			r.note(index("metadata.annotations", OptInAnnotation), fmt.Sprintf("is %.64q and not \"true\", which the original ignores", o.GetAnnotations()[OptInAnnotation]), "")
		default:
			unzoned++
			result.optIn(o, o, restart{deployment: o.GetName(), schedule: tidekeeperv1.DefaultSchedule, timeZone: cmp.Or(options.TimeZone, tidekeeperv1.DefaultTimeZone)}, options, r)
		}
		result.Remarks = append(result.Remarks, r.list...)
	}
	if unzoned > 0 && options.TimeZone == "" {
		result.Remarks = append(result.Remarks, Remark{
			Severity: Note, Field: "spec.timeZone",
			Why:     fmt.Sprintf("UTC for %s: the original has no such field and ran on the clock of its controller", term.Plural(unzoned, "schedule")),
			Instead: "--time-zone Asia/Shanghai, for example, if the controller ran there",
		})
	}
}

func optsIn(deployment Object) bool { return deployment.GetAnnotations()[OptInAnnotation] == "true" }

func readEru(o Object, r *remarks) (restart, bool) {
	var spec eruSpec
	if !readSpec(o, &spec, r) {
		return restart{}, false
	}
	deployment := cmp.Or(spec.Deploymentname, spec.DeploymentName)
	switch {
	case deployment == "":
		r.leftOut("spec.deploymentname", "is missing", "name a Deployment of the same namespace")
		return restart{}, false
	case spec.Deploymentname != "" && spec.DeploymentName != "" && spec.Deploymentname != spec.DeploymentName:
		r.leftOut("spec.deploymentName", "differs from spec.deploymentname", "keep one of the two")
		return restart{}, false
	case len(validation.IsDNS1123Subdomain(deployment)) > 0:
		r.leftOut("spec.deploymentname", fmt.Sprintf("%.64q is not the name of a Deployment", deployment), "lower-case letters, digits, '-' and '.'")
		return restart{}, false
	}
	expression, zone, ok := cron(spec.Schedule, r)
	if !ok {
		return restart{}, false
	}
	for field, value := range map[string]any{"deploymentName": deployment, "enabled": spec.Enabled, "schedule": spec.Schedule} {
		text, err := json.Marshal(value)
		if mirror, found := o.GetAnnotations()[EruKind.Group+"/"+field]; found && (err != nil || mirror != string(text)) {
			r.note(index("metadata.annotations", EruKind.Group+"/"+field), fmt.Sprintf("is %.64s, and the spec has %.64s: the original had not seen the change yet", mirror, text), "the spec counts")
		}
	}
	return restart{deployment: deployment, enabled: spec.Enabled, schedule: expression, timeZone: zone}, true
}

// restart converts an Eru that was not created because of its Deployment's annotation. desired
// holds the values of the Eru's spec. The remarks about the Eru are added to r.
func (result *Result) restart(o Object, desired restart, deployments map[key]Object, options Options, r *remarks) {
	labels, annotations := carried(o, r)
	restart := applyv1.ScheduledRestart(o.GetName(), o.GetNamespace()).WithLabels(labels).WithAnnotations(annotations).
		WithSpec(applyv1.ScheduledRestartSpec().
			WithTargetRef(applyv1.TargetRef().WithKind(DeploymentKind.Kind).WithName(desired.deployment)).
			WithSchedule(tidekeeperv1.CronExpression(desired.schedule)).WithTimeZone(desired.timeZone).WithSuspend(!desired.enabled))
	if o.GetNamespace() == "" {
		restart.Namespace = nil
	}
	result.Restarts = append(result.Restarts, restart)
	_, exists := deployments[key{o.GetNamespace(), desired.deployment}]
	_, mirrored := o.GetAnnotations()[EruKind.Group+"/deploymentName"]
	switch {
	case !exists && options.Complete:
		r.note("spec.deploymentname", "there is no Deployment "+desired.deployment, "it will report "+tidekeeperv1.ReasonTargetNotFound+" and wait for one")
	case !exists && mirrored:
		r.note("", "the original created it because of an annotation on its Deployment, which was not read: it will not be deleted with the Deployment",
			"read the Deployment too, if it is still annotated")
	case exists:
		r.note("", "the original deletes it with the Deployment "+desired.deployment+", which does not opt in: the ScheduledRestart stays, and then reports "+tidekeeperv1.ReasonTargetNotFound,
			"annotate the Deployment if it must go with it")
	}
}

// optIn converts a Deployment's annotation, and the Eru that the original operator created for it.
// The parameter o is the Eru, or the Deployment if there is no Eru.
func (result *Result) optIn(o, deployment Object, desired restart, options Options, r *remarks) {
	if o.GroupVersionKind() == EruKind {
		labels, annotations := carried(o, r)
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			r.leftOut(index("metadata.labels", k), "the opt-in creates the object, and cannot set labels", "kubectl label it afterwards")
		}
		for _, k := range slices.Sorted(maps.Keys(annotations)) {
			r.leftOut(index("metadata.annotations", k), "the opt-in creates the object, and cannot set annotations", "kubectl annotate it afterwards")
		}
	}
	namespace, name := deployment.GetNamespace(), deployment.GetName()
	wanted := [][2]string{{tidekeeperv1.OptInAnnotation, "true"}}
	if desired.enabled {
		wanted = append(wanted, [2]string{tidekeeperv1.OptInScheduleAnnotation, desired.schedule})
	}
	if desired.timeZone != tidekeeperv1.DefaultTimeZone {
		wanted = append(wanted, [2]string{tidekeeperv1.OptInTimeZoneAnnotation, desired.timeZone})
	}
	words := append([]string{"annotate", "deployment", name}, inNamespace(namespace)...)
	missing := 0
	for _, annotation := range wanted {
		if deployment.GetAnnotations()[annotation[0]] != annotation[1] {
			words = append(words, annotation[0]+"="+annotation[1])
			missing++
		}
	}
	if missing == 0 {
		r.note("", "is already opted in", "")
		return
	}
	result.ManualSteps = append(result.ManualSteps, ManualStep{
		Object: describe(deployment), Why: "the opt-in is an annotation on the Deployment, in its manifest or by command: a manifest of the annotation alone could damage it",
		Line: kubectl(words...),
	})
	if !desired.enabled && desired.schedule != tidekeeperv1.DefaultSchedule && !options.Suspended {
		restart := append([]string{restartsResource + "/" + name}, inNamespace(namespace)...)
		result.ManualSteps = append(result.ManualSteps, ManualStep{
			Object: r.object, Why: "it is disabled, and an annotation with its schedule would enable it",
			Line: kubectl(append([]string{"wait", "--for=create", "--timeout=60s"}, restart...)...) + " && " +
				kubectl(append([]string{"patch"}, append(restart, "--type=merge", "-p", `{"spec":{"schedule":`+strconv.Quote(desired.schedule)+`}}`)...)...),
		})
	}
}
