(function(){var d=document,t=d.getElementById("theme"),k="tau-theme";
try{var s=localStorage.getItem(k);if(s=="light"||s=="dark")t.value=s}catch(e){}
t.onchange=function(){try{localStorage.setItem(k,t.value)}catch(e){}};
[["open",1],["close",0]].forEach(function(a){var b=d.getElementById(a[0]);b.hidden=false;
b.onclick=function(){d.querySelectorAll("main details").forEach(function(x){x.open=!!a[1]})}});
d.querySelectorAll("time").forEach(function(x){x.title=new Date(x.dateTime).toLocaleString()})})()
