#!/bin/sh
# Deploys the connectors of a mirror, by files mm2-{cpc,hbc,msc}-CLUSTER.json: `sparkmirror deploy --help`.
# CONF_FOLDER is their folder (mm2), TARGET_HOST the Connect worker (localhost:8083).

case $1 in
  deploy | undeploy | redeploy | status) ;;
  *)
    echo "usage: mm2.sh [deploy | undeploy | redeploy | status] cluster"
    exit 2
    ;;
esac

action=$1
shift
if [ -n "$TARGET_HOST" ]; then
  set -- --url "$TARGET_HOST" "$@"
fi
case $action in
  deploy | redeploy) set -- --dir "${CONF_FOLDER:-mm2}" "$@" ;;
esac

exec "$(dirname "$(readlink -f "$0")")/sparkmirror-run.sh" mm2 "$action" "$@"
