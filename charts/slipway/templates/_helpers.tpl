{{/* What is in no namespace has the release's in its name, but for the usual one: several managers may share a cluster. */}}
{{- define "slipway.suffix" -}}
{{- if ne .Release.Namespace "slipway-system" }}-{{ .Release.Namespace }}{{ end -}}
{{- end }}

{{/* A repository in the registry of the platform. */}}
{{- define "slipway.inRegistry" -}}
{{- $address := .Values.global.registry.address | trimSuffix "/" -}}
{{- if $address }}{{ $address }}/{{ end }}{{ .repository -}}
{{- end }}

{{- define "slipway.image" -}}
{{- $tag := default (printf "v%s" .Chart.AppVersion) .Values.image.tag -}}
{{ include "slipway.inRegistry" (dict "Values" .Values "repository" .Values.image.repository) }}:{{ $tag }}
{{- end }}

{{- define "slipway.catalogNamespace" -}}
{{ default .Release.Namespace .Values.provider.imageCatalog.namespace }}
{{- end }}

{{- define "slipway.hasBaremetal" -}}
{{- if or (has "all" .Values.controllers) (has "baremetal" .Values.controllers) }}true{{ end -}}
{{- end }}

{{/* What the Leases of those are named after who share the work: see division_name in fleet/registry.py. */}}
{{- define "slipway.division" -}}
{{- $names := list "bootstrap" "machines" "controlplane" "inventory" "baremetal" -}}
{{- $chosen := list -}}
{{- range $names }}{{ if has . $.Values.controllers }}{{ $chosen = append $chosen . }}{{ end }}{{ end -}}
{{- if or (has "all" .Values.controllers) (eq (len $chosen) (len $names)) }}{{ $chosen = list }}{{ end -}}
{{- prepend $chosen "slipway-manager" | join "-" -}}
{{- end }}

{{/* The flags of the manager that values decide, as a list. */}}
{{- define "slipway.flags" -}}
{{- $flags := list -}}
{{- if gt (int .Values.shards) 1 }}{{ $flags = append $flags (printf "--shards=%d" (int .Values.shards)) }}{{ end -}}
{{- if or (has "all" .Values.controllers) (has "inventory" .Values.controllers) -}}
{{- with .Values.registration.url }}{{ $flags = append $flags (printf "--registration-url=%s" .) }}{{ end -}}
{{- with .Values.registration.apiServer }}{{ $flags = append $flags (printf "--registration-api-server=%s" .) }}{{ end -}}
{{- end -}}
{{- if include "slipway.hasBaremetal" . -}}
{{- with .Values.provider.imageCatalog.namespace }}{{ $flags = append $flags (printf "--catalog-namespace=%s" .) }}{{ end -}}
{{- with .Values.provider.aliveImage }}
{{- $flags = append $flags (printf "--alive-image=%s" (include "slipway.inRegistry" (dict "Values" $.Values "repository" .))) }}
{{- end -}}
{{- end -}}
{{- if or (has "all" .Values.controllers) (has "controlplane" .Values.controllers) -}}
{{- $store := .Values.snapshots.store -}}
{{- if .Values.snapshots.persistentVolumeClaim }}{{ $store = "/var/lib/slipway/snapshots" }}{{ end -}}
{{- if $store }}
{{- $flags = concat $flags (list (printf "--snapshot-store=%s" $store) (printf "--snapshot-keep=%d" (int .Values.snapshots.keep))) }}
{{- with .Values.snapshots.secret }}{{ $flags = append $flags (printf "--snapshot-secret=%s" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- concat $flags .Values.extraArgs | toYaml -}}
{{- end }}
