# The static library, and static versions of its dependencies, so that programs and the Python extension need no
# other libraries.

# wick_static_needs(TARGET SCOPE): links the dependencies of libwick_static.a.
function(wick_static_needs target scope)
  foreach(library pcre2-8 utf8proc zstd)
    string(MAKE_C_IDENTIFIER WICK_STATIC_${library} variable)
    find_library(${variable} NAMES lib${library}.a ${library} REQUIRED)
    target_link_libraries(${target} ${scope} ${${variable}})
  endforeach()
  if(NOT WICK_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A Python extension shares the process's C++ runtime with other extensions.
    set(program $<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>)
    target_link_options(${target} INTERFACE $<${program}:-static-libstdc++> $<${program}:-static-libgcc>)
  endif()
endfunction()

# wick_use_static(FILE): imports a libwick_static.a that was built elsewhere as the target wick_static.
function(wick_use_static file)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "no ${file}: build the target wick_static there")
  endif()
  add_library(wick_static STATIC IMPORTED GLOBAL)
  set_target_properties(wick_static PROPERTIES IMPORTED_LOCATION ${file})
  target_link_libraries(wick_static INTERFACE wick_options Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(wick_static INTERFACE
    $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  wick_static_needs(wick_static INTERFACE)
endfunction()
