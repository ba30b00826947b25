{{/*
Copyright The Tidekeeper Authors.
SPDX-License-Identifier: Apache-2.0
*/}}

{{/* The labels of everything that is installed. */}}
{{- define "tidekeeper.labels" -}}
app.kubernetes.io/name: tidekeeper
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/*
The objects of one of the files, which are copies of those in config, with the
labels, in the namespace of the release. Takes root, path and, if there is one,
annotations.
*/}}
{{- define "tidekeeper.objects" -}}
{{- $root := .root -}}
{{- $path := .path -}}
{{- $annotations := .annotations -}}
{{- /* Quoted where it is a value of its own: a namespace may be called 123, or no. */}}
{{- $text := $root.Files.Get $path | replace "namespace: tidekeeper-system\n" (printf "namespace: %q\n" $root.Release.Namespace) | replace "tidekeeper-system" $root.Release.Namespace -}}
{{- range splitList "\n---\n" (printf "\n%s" $text) }}
{{- $object := fromYaml . }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $path $object.Error) }}{{ end }}
{{- if $object }}
{{- $_ := set $object.metadata "labels" (merge (dict) (include "tidekeeper.labels" $root | fromYaml) ($object.metadata.labels | default dict)) }}
{{- with $annotations }}
{{- $_ := set $object.metadata "annotations" (merge (dict) . ($object.metadata.annotations | default dict)) }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}
{{- end }}

{{/*
"true" if an uninstall keeps the kinds: if crds.keep says so; or, if it says nothing, if
one of them was there before the release, or was kept until now.
*/}}
{{- define "tidekeeper.keepKinds" -}}
{{- if kindIs "bool" .Values.crds.keep -}}
{{- if .Values.crds.keep }}true{{ end -}}
{{- else -}}
{{- $keep := false -}}
{{- range $name := list "freezes.tidekeeper.dev" "nodepools.tidekeeper.dev" "scheduledrestarts.tidekeeper.dev" -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- if or (ne (index $annotations "meta.helm.sh/release-name" | default "") $.Release.Name) (eq (index $annotations "helm.sh/resource-policy" | default "") "keep") -}}
{{- $keep = true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $keep }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* The image. */}}
{{- define "tidekeeper.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}{{ end }}
{{- end }}
{{- end }}

{{/*
The controllers to run, by the rule of the flag --controllers: the first entry
that names one counts, and "*" is all that are on by default.
*/}}
{{- define "tidekeeper.controllers" -}}
{{- $entries := .Values.controllers -}}
{{- $chosen := list -}}
{{- range $controller := .Files.Get "files/controllers.yaml" | fromYamlArray -}}
{{- $on := and (has "*" $entries) (not $controller.offByDefault) -}}
{{- range reverse $entries -}}
{{- if eq . $controller.name }}{{ $on = true }}{{ else if eq . (print "-" $controller.name) }}{{ $on = false }}{{ end -}}
{{- end -}}
{{- if $on }}{{ $chosen = append $chosen $controller.name }}{{ end -}}
{{- end -}}
{{- toJson $chosen -}}
{{- end }}

{{/* The security of a pod and of its one container: the profile restricted. */}}
{{- define "tidekeeper.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- define "tidekeeper.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The file of --restart-queries. */}}
{{- define "tidekeeper.restartQueries" -}}
{{- toYaml (dict "prometheus" .Values.restartQueries.prometheus "queries" .Values.restartQueries.queries) -}}
{{- end }}
